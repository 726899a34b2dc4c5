// The globals that a declaration file defines, as TypeScript understands it: node declared_globals.mjs FILE
// Prints {name: {members, statics} | "value"} for every global value; names as an isolate spells them.
import ts from "typescript";

const [file] = process.argv.slice(2);
const program = ts.createProgram([file], { lib: ["lib.esnext.d.ts"], types: [], strict: true, noEmit: true });
const checker = program.getTypeChecker();
const source = program.getSourceFile(file);

function names(symbols) {
  return symbols
    .filter((symbol) => symbol.flags & ts.SymbolFlags.Value)
    .map((symbol) => symbol.escapedName.toString())
    .filter((name) => name !== "prototype" && name !== "__constructor")
    .map((name) => name.replace(/^__@(\w+)@\d+$/, "@@Symbol.$1"))
    .sort();
}

// The members that a class defines itself, including interfaces of its name, without inherited ones.
function ownMembers(type) {
  const own = type.symbol.declarations;
  const inherited = new Set();
  for (const { heritageClauses = [] } of own.filter(ts.isClassDeclaration)) {
    for (const { types } of heritageClauses.filter((clause) => clause.token === ts.SyntaxKind.ExtendsKeyword)) {
      for (const each of checker.getTypeAtLocation(types[0]).getProperties()) inherited.add(each.escapedName);
    }
  }
  const isOwn = (property) => property.declarations?.some((declaration) => own.includes(declaration.parent));
  return type.getProperties().filter((property) => !inherited.has(property.escapedName) || isOwn(property));
}

const found = {};
for (const symbol of checker.getSymbolsInScope(source, ts.SymbolFlags.Value)) {
  if (!symbol.declarations?.some((each) => each.getSourceFile() === source) || symbol.name.startsWith('"')) continue;
  const type = checker.getTypeOfSymbolAtLocation(symbol, source);
  const [construct] = type.getConstructSignatures();
  const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0;
  if (isClass) {
    const instance = checker.getDeclaredTypeOfSymbol(symbol);
    found[symbol.name] = { members: names(ownMembers(instance)), statics: names([...symbol.exports.values()]) };
  } else if (construct) {
    const members = names(construct.getReturnType().getProperties()).filter((name) => !/^\d+$/.test(name));
    found[symbol.name] = { members, statics: [] };
  } else if (symbol.flags & ts.SymbolFlags.Namespace || symbol.name === "console")
    found[symbol.name] = { members: [], statics: names(type.getProperties()) };
  else found[symbol.name] = "value";
}
const problems = ts.getPreEmitDiagnostics(program).map((each) => ts.flattenDiagnosticMessageText(each.messageText, "\n"));
console.log(JSON.stringify({ found, problems }));
