// `@aws-sdk/client-s3`: against the S3 endpoint of a node
// `@aws-sdk/lib-storage`: uploads in parts
import { CreateMultipartUploadCommand, DeleteObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { Readable } from "node:stream";

export default async ({ s3 }) => {
  const { bucket: Bucket, ...options } = s3;
  const client = new S3Client({ region: "auto", forcePathStyle: true, ...options });
  await client.send(new PutObjectCommand({ Bucket, Key: "a.txt", Body: "hello 日本", ContentType: "text/plain", Metadata: { owner: "ann" } }));
  const got = await client.send(new GetObjectCommand({ Bucket, Key: "a.txt" }));
  const head = await client.send(new HeadObjectCommand({ Bucket, Key: "a.txt" }));
  const listed = await client.send(new ListObjectsV2Command({ Bucket }));
  const missing = await client.send(new GetObjectCommand({ Bucket, Key: "nothing" })).catch((error) => [error.name, error.$metadata.httpStatusCode]);
  const link = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: "a.txt" }), { expiresIn: 60 });
  const linked = await (await fetch(link)).text();
  let parts = 0;
  const upload = new Upload({ client, params: { Bucket, Key: "big", Body: Readable.from([Buffer.alloc(4 << 20, 1), Buffer.alloc(3 << 20, 2)]) }, partSize: 5 << 20, queueSize: 2 });
  upload.on("httpUploadProgress", () => parts++);
  await upload.done();
  const big = await client.send(new GetObjectCommand({ Bucket, Key: "big", Range: "bytes=4194300-4194307" }));
  const range = Buffer.from(await big.Body.transformToByteArray()).toString("hex");
  for (const Key of ["a.txt", "big"]) await client.send(new DeleteObjectCommand({ Bucket, Key }));
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: "x" }));
  return [await got.Body.transformToString(), got.Metadata, head.ContentLength, head.ETag, listed.Contents.map((each) => each.Key), missing, linked, parts, big.ContentRange, range, UploadId.length > 0];
};
