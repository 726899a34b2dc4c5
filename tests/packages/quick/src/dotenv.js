import dotenv from "dotenv";

export default () => {
  const parsed = dotenv.parse('A=1\nB="two words"\n# a comment\nexport C=\'x\'\nD=a#b\n');
  const missing = dotenv.config({ path: "/nothing/.env", quiet: true });
  dotenv.populate(process.env, { PACKAGES_A: "set" });
  return [parsed, missing.error?.code, process.env.PACKAGES_A];
};
