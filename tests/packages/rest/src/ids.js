import { customAlphabet, nanoid } from "nanoid";
import { v4, v5, v7, validate, version } from "uuid";

export default () => {
  const id = v4();
  return [v5("shop.example", v5.DNS), validate(id), version(id), version(v7()), nanoid().length, /^[ab]{5}$/.test(customAlphabet("ab", 5)())];
};
