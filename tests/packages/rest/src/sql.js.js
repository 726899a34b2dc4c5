// `sql.js`: with its `.wasm` file imported and given to `instantiateWasm`
import initSqlJs from "sql.js";
import { instantiateWasm } from "#wasm/sql";

export default async () => {
  const SQL = await initSqlJs({ instantiateWasm });
  const db = new SQL.Database();
  db.run("CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('pear', 1.5), ('plum', 2)");
  const result = db.exec("SELECT name, price * 2 AS double FROM item ORDER BY name");
  db.close();
  return result;
};
