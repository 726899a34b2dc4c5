// Makes SQLite count the rows that a statement reads and writes, and end when it is told to: `node tools/count_rows.mjs sqlite3.c OUT`.
//
// SQLite's own counters of a statement leave out rows found by a key, and rows of indexes. Two more counters are added to
// those of sqlite3_stmt_status(), and a line to each instruction of the virtual machine that reads or writes a row.
// json_patch() takes time by the square of its documents, and SQLite asks its progress handler between instructions only. A line
// asks it there as well.
//
// A place that is not found, or found twice, is an error: another release of SQLite then needs another look.
import { readFileSync, writeFileSync } from "node:fs";

const READ = "p->aCounter[9]";
const WRITTEN = "p->aCounter[10]";

// [instruction, the code that the line follows, the line]
const PLACES = [
  ["OP_Count", "rc = sqlite3BtreeCount(db, pCrsr, &nEntry);\n", `${READ} += (u32)nEntry;\n`],
  ["OP_SeekGE", "goto seek_not_found;\n    }\n  }\n", `${READ}++;\n`, "#ifdef SQLITE_TEST"],
  ["OP_NotExists", "pC->seekResult = res;\n", `${READ}++;\n`],
  ["OP_Insert", "(pOp->p5 & OPFLAG_NCHANGE)!=0 );\n", `if( !pC->isEphemeral ) ${WRITTEN}++;\n`],
  ["OP_Delete", "/* Invoke the update-hook if required. */\n  if( opflags & OPFLAG_NCHANGE ){\n", `if( !pC->isEphemeral ) ${WRITTEN}++;\n`],
  ["OP_Last", "pC->cacheStatus = CACHE_STALE;\n  if( rc ) goto abort_due_to_error;\n", `${READ}++;\n`],
  ["OP_Rewind", "pC->nullRow = (u8)res;\n", `${READ}++;\n`],
  ["OP_Next", "p->aCounter[pOp->p5]++;\n", `${READ}++;\n`],
  ["OP_IdxInsert", "if( pOp->p5 & OPFLAG_NCHANGE ) p->nChange++;\n", `if( !pC->isEphemeral ) ${WRITTEN}++;\n`],
  ["OP_Clear", "p->nChange += nChange;\n", `${WRITTEN} += (u32)nChange;\n`],
  ["OP_VNext", "sqlite3VtabImportErrmsg(p, pVtab);\n  if( rc ) goto abort_due_to_error;\n", `${READ}++;\n`],
  ["OP_VUpdate", "}else{\n      p->nChange++;\n", `${WRITTEN}++;\n`],
];

const [from, to] = process.argv.slice(2);
let code = readFileSync(from, "utf8");

function fail(what) {
  throw new Error(`tools/count_rows.mjs: ${what} is not where it was in this release of SQLite`);
}

function insert(after, at, line) {
  code = code.slice(0, at + after.length) + line + code.slice(at + after.length);
}

const counters = "u32 aCounter[9];";
if (code.split(counters).length !== 2) fail("aCounter");
code = code.replace(counters, "u32 aCounter[11];");
for (const [instruction, after, line, before = ""] of PLACES) {
  const start = code.search(new RegExp(`^case ${instruction}:`, "m"));
  const end = start < 0 ? -1 : code.indexOf("\n/* Opcode: ", start);
  const body = code.slice(start, end);
  if (start < 0 || end < 0 || body.split(after + before).length !== 2) fail(instruction);
  insert(after, start + body.indexOf(after + before), line);
}
const merge = code.search(/^static int jsonMergePatch\(\n/m);
const behindKey = "if( iPCursor>iPEnd ) return JSON_MERGE_BADPATCH;\n";
const place = merge < 0 ? -1 : code.indexOf(behindKey, merge);
if (place < 0 || code.split(behindKey).length !== 2) fail("jsonMergePatch");
insert(behindKey, place, "if( pTarget->db->xProgress && pTarget->db->xProgress(pTarget->db->pProgressArg) ) return JSON_MERGE_OOM;\n");
writeFileSync(to, code);
