// `qrcode`: as SVG and text; pictures need a canvas in its build for browsers
import jpeg from "jpeg-js";
import { PDFDocument, StandardFonts } from "pdf-lib";
import { PNG } from "pngjs";
import QRCode from "qrcode";

export default async () => {
  const png = new PNG({ width: 4, height: 2 });
  png.data.fill(200);
  const file = PNG.sync.write(png);
  const read = PNG.sync.read(file);
  const streamed = await new Promise((resolve, reject) => new PNG().on("parsed", function () { resolve([this.width, this.height]); }).on("error", reject).end(file));
  const photo = jpeg.encode({ data: read.data, width: 4, height: 2 }, 80);
  const raw = jpeg.decode(photo.data, { useTArray: true });
  const pdf = await PDFDocument.create();
  const font = await pdf.embedFont(StandardFonts.Helvetica);
  const page = pdf.addPage([200, 100]);
  page.drawText("hello", { x: 10, y: 50, font, size: 20 });
  page.drawImage(await pdf.embedPng(file), { x: 0, y: 0 });
  pdf.setTitle("Title");
  const again = await PDFDocument.load(await pdf.save());
  return [[...read.data.slice(0, 4)], streamed, [raw.width, raw.height, Math.abs(raw.data[0] - 200) < 4], again.getPageCount(), again.getTitle(), again.getPage(0).getSize(), await QRCode.toString("https://shop.example", { type: "svg" })];
};
