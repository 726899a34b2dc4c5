// `ajv`: schemas compiled at the top level, since a worker may not write code later
import Ajv from "ajv";
import Joi from "joi";
import * as yup from "yup";
import { z } from "zod";

const validate = new Ajv({ allErrors: true }).compile({ type: "object", required: ["name"], properties: { name: { type: "string", minLength: 2 }, age: { type: "integer" } } });

export default async () => {
  const user = z.object({ name: z.string().min(2), email: z.email(), tags: z.array(z.string()).default([]) });
  const joi = Joi.object({ name: Joi.string().min(2).required(), at: Joi.date().iso(), email: Joi.string().email({ tlds: false }) });
  const shape = yup.object({ name: yup.string().min(2).required(), age: yup.number().integer() });
  return [
    user.parse({ name: "ann", email: "a@example.com" }),
    user.safeParse({ name: "a", email: "x" }).error.issues.map((issue) => [issue.path, issue.message]),
    z.toJSONSchema(user),
    joi.validate({ name: "ann", at: "2024-01-01" }).value,
    joi.validate({ name: "a", email: "x" }, { abortEarly: false }).error.details.map((each) => each.message),
    await shape.validate({ name: "ann", age: "5" }),
    await shape.validate({ name: "a", age: 1.5 }, { abortEarly: false }).catch((error) => error.errors),
    validate({ name: "ann" }),
    validate({ name: "a", age: "x" }) || validate.errors.map((error) => error.message),
  ];
};
