import bcrypt from "bcryptjs";

export default async () => {
  const hash = await bcrypt.hash("pass", 4);
  return [bcrypt.hashSync("pass", "$2b$04$abcdefghijklmnopqrstuu"), await bcrypt.compare("pass", hash), bcrypt.compareSync("wrong", hash), bcrypt.getRounds(hash)];
};
