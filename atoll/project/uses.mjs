// Reports what the modules of a build need from the platform: the built-in modules they import, and the globals they use.
//
// Reads {modules: [{path, source, map}], known: [global]} as JSON and answers {imports, globals, wishes, packages, unread}. The parser is acorn, which
// is part of Node (its REPL uses it; --expose-internals makes it available): it reads everything that the build lets through, and
// adds no dependency. Places are those of the original sources where there is a source map.
import { SourceMap, createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { URL } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const { parse } = createRequire(import.meta.url)("internal/deps/acorn/acorn/dist/acorn");

const STACK_MB = 256;
const BUILT_IN = /^(node|cloudflare|atoll):/;
const REQUIRES = new Set(["require", "__require"]); // the second is what esbuild makes of the first
const GLOBAL_OBJECTS = new Set(["globalThis", "self", "global", "window"]);
// Parts that run only under some condition.
const CONDITIONAL = {
  IfStatement: ["consequent", "alternate"], ConditionalExpression: ["consequent", "alternate"], LogicalExpression: ["right"],
  SwitchCase: ["consequent"], WhileStatement: ["body"], ForStatement: ["body", "update"], ForInStatement: ["body"],
  ForOfStatement: ["body"], AssignmentPattern: ["right"], CatchClause: ["body"],
};

class Scope {
  constructor(parent, names = []) {
    this.parent = parent;
    this.names = new Set(names);
  }

  has(name) {
    for (let scope = this; scope !== null; scope = scope.parent) if (scope.names.has(name)) return true;
    return false;
  }
}

function isFunction(node) {
  return node.type === "FunctionDeclaration" || node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression";
}

function isNode(value) {
  return typeof value?.type === "string";
}

function* children(node) {
  for (const [key, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield [key, child];
  }
}

/** The names that a pattern declares. */
function* namesIn(pattern) {
  if (pattern.type === "Identifier") yield pattern.name;
  else if (pattern.type === "ObjectPattern") for (const each of pattern.properties) yield* namesIn(each.value ?? each.argument);
  else if (pattern.type === "ArrayPattern") for (const each of pattern.elements) yield* each === null ? [] : namesIn(each);
  else if (pattern.type === "AssignmentPattern") yield* namesIn(pattern.left);
  else if (pattern.type === "RestElement") yield* namesIn(pattern.argument);
}

/** The names that `var` declares in a function, at any depth. */
function* varsIn(node) {
  if (node.type === "VariableDeclaration" && node.kind === "var") for (const each of node.declarations) yield* namesIn(each.id);
  for (const [, child] of children(node)) if (!isFunction(child) && child.type !== "ClassBody") yield* varsIn(child);
}

/** The names that the statements of a block declare for this block. */
function* lexicalIn(statements) {
  for (const statement of statements) {
    const node = statement.declaration?.type?.endsWith("Declaration") ? statement.declaration : statement;
    if (node.type === "VariableDeclaration") for (const each of node.declarations) yield* namesIn(each.id);
    else if (node.type === "FunctionDeclaration" || node.type === "ClassDeclaration") yield* node.id === null ? [] : [node.id.name];
    else if (node.type === "ImportDeclaration") for (const each of node.specifiers) yield each.local.name;
  }
}

/** True if the function around a statement may end there. */
function returns(node) {
  if (node.type === "ReturnStatement") return true;
  for (const [, child] of children(node)) if (!isFunction(child) && returns(child)) return true;
  return false;
}

/** As a module, or as the script that a worker in the older syntax is. */
function parsed(source) {
  const options = { ecmaVersion: "latest", sourceType: "module", locations: true, allowHashBang: true };
  try {
    return parse(source, options);
  } catch (error) {
    try {
      return parse(source, { ...options, sourceType: "script" });
    } catch {
      throw error;
    }
  }
}

class Reader {
  constructor(module, known, found) {
    this.module = module;
    this.known = known;
    this.found = found;
    this.map = module.map === "" ? null : new SourceMap(JSON.parse(module.map));
  }

  read() {
    const program = parsed(this.module.source);
    this.isScript = !program.body.some((statement) => statement.type.startsWith("Export")); // it may import modules
    const scope = new Scope(null, [...varsIn(program), ...lexicalIn(program.body)]);
    for (const statement of program.body) this.visit(statement, scope, true);
  }

  /** The original place of a node. */
  place({ loc: { start } }) {
    const entry = this.map?.findEntry(start.line - 1, start.column);
    if (entry?.originalSource === undefined) return { file: this.map === null ? this.module.path : "", line: this.map === null ? start.line : 0 };
    return { file: entry.originalSource, line: entry.originalLine + 1 };
  }

  /** `isSure`: it runs whenever the module is loaded. */
  visit(node, scope, isSure) {
    const visitor = this[node.type];
    if (visitor !== undefined) visitor.call(this, node, scope, isSure);
    else this.visitParts(node, scope, isSure);
  }

  visitParts(node, scope, isSure, skipped = undefined) {
    const conditional = CONDITIONAL[node.type] ?? [];
    for (const [key, child] of children(node)) {
      if (key !== skipped) this.visit(child, scope, isSure && !conditional.includes(key));
    }
  }

  /** What a declared pattern evaluates: defaults and computed keys, not the names it declares. */
  visitPattern(pattern, scope, isSure) {
    if (pattern.type === "Identifier") return;
    if (pattern.type === "AssignmentPattern") this.visit(pattern.right, scope, false);
    if (pattern.type === "Property" && pattern.computed) this.visit(pattern.key, scope, isSure);
    const inner = { ObjectPattern: "properties", ArrayPattern: "elements", AssignmentPattern: "left", RestElement: "argument", Property: "value" };
    for (const each of [pattern[inner[pattern.type]]].flat()) if (isNode(each)) this.visitPattern(each, scope, isSure);
  }

  visitFunction(node, scope, isSure) {
    const own = new Scope(scope, node.type === "ArrowFunctionExpression" ? [] : ["arguments"]);
    if (node.type === "FunctionExpression" && node.id !== null) own.names.add(node.id.name);
    for (const parameter of node.params) for (const name of namesIn(parameter)) own.names.add(name);
    if (node.body.type === "BlockStatement") {
      for (const name of varsIn(node.body)) own.names.add(name);
      for (const name of lexicalIn(node.body.body)) own.names.add(name);
    }
    for (const parameter of node.params) this.visitPattern(parameter, own, isSure);
    if (node.body.type !== "BlockStatement") return this.visit(node.body, own, isSure);
    let reaches = isSure;
    for (const statement of node.body.body) {
      this.visit(statement, own, reaches);
      reaches &&= !returns(statement);
    }
  }

  FunctionDeclaration(node, scope) {
    this.visitFunction(node, scope, false);
  }

  FunctionExpression(node, scope) {
    this.visitFunction(node, scope, false);
  }

  ArrowFunctionExpression(node, scope) {
    this.visitFunction(node, scope, false);
  }

  CallExpression(node, scope, isSure) {
    const isRequire = REQUIRES.has(node.callee.name) && node.arguments.length === 1 && typeof node.arguments[0].value === "string";
    if (isRequire && !BUILT_IN.test(node.arguments[0].value)) this.notePackage(node, node.arguments[0].value, "required");
    const runsNow = isFunction(node.callee) && !node.callee.generator;
    if (runsNow) this.visitFunction(node.callee, scope, isSure && !node.callee.async);
    this.visitParts(node, scope, isSure, runsNow ? "callee" : undefined);
  }

  BlockStatement(node, scope, isSure) {
    const own = new Scope(scope, lexicalIn(node.body));
    for (const statement of node.body) this.visit(statement, own, isSure);
  }

  StaticBlock(node, scope, isSure) {
    const vars = node.body.flatMap((statement) => [...varsIn(statement)]);
    this.BlockStatement(node, new Scope(scope, vars), isSure);
  }

  TryStatement(node, scope, isSure) {
    this.visit(node.block, scope, isSure && node.handler === null);
    if (node.handler !== null) this.visit(node.handler, scope, false);
    if (node.finalizer !== null) this.visit(node.finalizer, scope, isSure);
  }

  CatchClause(node, scope) {
    const own = new Scope(scope, node.param === null ? [] : namesIn(node.param));
    if (node.param !== null) this.visitPattern(node.param, own, false);
    this.visit(node.body, own, false);
  }

  ForStatement(node, scope, isSure) {
    this.visitParts(node, new Scope(scope, node.init === null ? [] : lexicalIn([node.init])), isSure);
  }

  ForInStatement(node, scope, isSure) {
    this.visitParts(node, new Scope(scope, lexicalIn([node.left])), isSure);
  }

  ForOfStatement(node, scope, isSure) {
    this.ForInStatement(node, scope, isSure);
  }

  SwitchStatement(node, scope, isSure) {
    this.visit(node.discriminant, scope, isSure);
    const own = new Scope(scope, lexicalIn(node.cases.flatMap((each) => each.consequent)));
    for (const each of node.cases) this.visit(each, own, isSure);
  }

  ClassDeclaration(node, scope, isSure) {
    const own = new Scope(scope, node.id === null ? [] : [node.id.name]);
    if (node.superClass !== null) this.visit(node.superClass, own, isSure);
    for (const member of node.body.body) this.visit(member, own, isSure);
  }

  ClassExpression(node, scope, isSure) {
    this.ClassDeclaration(node, scope, isSure);
  }

  MethodDefinition(node, scope, isSure) {
    if (node.computed) this.visit(node.key, scope, isSure);
    this.visit(node.value, scope, isSure);
  }

  PropertyDefinition(node, scope, isSure) {
    if (node.computed) this.visit(node.key, scope, isSure);
    if (node.value !== null) this.visit(node.value, new Scope(scope, ["arguments"]), isSure && node.static);
  }

  Property(node, scope, isSure) {
    if (node.computed) this.visit(node.key, scope, isSure);
    this.visit(node.value, scope, isSure);
  }

  VariableDeclarator(node, scope, isSure) {
    this.visitPattern(node.id, scope, isSure);
    if (node.init !== null) this.visit(node.init, scope, isSure);
  }

  LabeledStatement(node, scope, isSure) {
    this.visit(node.body, scope, isSure);
  }

  BreakStatement() {}

  ContinueStatement() {}

  MetaProperty() {}

  UnaryExpression(node, scope, isSure) {
    const isQuestion = node.operator === "typeof" && node.argument.type === "Identifier" && !scope.has(node.argument.name);
    if (isQuestion) this.note(node.argument, node.argument.name, "asked");
    else this.visit(node.argument, scope, isSure);
  }

  BinaryExpression(node, scope, isSure) {
    if (node.operator === "in" && typeof node.left.value === "string" && this.isGlobalObject(node.right, scope)) {
      this.note(node.left, node.left.value, "asked");
    }
    this.visitParts(node, scope, isSure);
  }

  MemberExpression(node, scope, isSure) {
    const name = node.computed ? node.property.value : node.property.name;
    if (this.isGlobalObject(node.object, scope) && typeof name === "string") this.note(node, name, "asked"); // it is undefined, not an error
    const isContext = node.object.name === "ctx" || (node.object.property?.name === "ctx" && node.object.object?.type === "ThisExpression");
    if (isContext && name === "exports") this.found.wishes.push({ name: "ctx.exports", ...this.place(node) });
    this.visit(node.object, scope, isSure);
    if (node.computed) this.visit(node.property, scope, isSure);
  }

  AssignmentExpression(node, scope, isSure) {
    const { left } = node;
    const isMember = left.type === "MemberExpression" && this.isGlobalObject(left.object, scope);
    if (isMember) this.found.defined.add(left.computed ? left.property.value : left.property.name); // code makes this global itself
    this.visitParts(node, scope, isSure);
  }

  NewExpression(node, scope, isSure) {
    const { callee } = node;
    const isMember = callee.type === "MemberExpression" && !callee.computed && this.isGlobalObject(callee.object, scope);
    if (isMember) this.note(callee, callee.property.name, isSure ? "sure" : "used"); // new globalThis.X() fails like new X()
    this.visitParts(node, scope, isSure, isMember ? "callee" : undefined);
  }

  Identifier(node, scope, isSure) {
    if (!scope.has(node.name)) this.note(node, node.name, isSure ? "sure" : "used");
  }

  ImportDeclaration(node) {
    const names = node.specifiers.filter((each) => each.type === "ImportSpecifier").map((each) => each.imported.name ?? each.imported.value);
    this.noteImport(node, names, true);
  }

  ExportNamedDeclaration(node, scope, isSure) {
    if (node.source !== null) this.noteImport(node, node.specifiers.map((each) => each.local.name ?? each.local.value), true);
    else if (node.declaration !== null) this.visit(node.declaration, scope, isSure);
  }

  ExportAllDeclaration(node) {
    this.noteImport(node, [], true);
  }

  ImportExpression(node, scope, isSure) {
    if (node.source.type === "Literal") this.noteImport(node, [], false);
    else this.visit(node.source, scope, isSure);
  }

  isGlobalObject(node, scope) {
    return node.type === "Identifier" && GLOBAL_OBJECTS.has(node.name) && !scope.has(node.name);
  }

  /** `how`: "sure" when the module cannot load without it, "used" elsewhere, "asked" where the code looks whether it is there. */
  note(node, name, how) {
    if (!this.known.has(name)) this.found.globals.push({ name, how, script: this.isScript, ...this.place(node) });
  }

  noteImport(node, names, isSure) {
    const module = `${node.source.value}`;
    if (BUILT_IN.test(module)) this.found.imports.push({ module, names, sure: isSure, ...this.place(node.source) });
    else this.notePackage(node.source, this.pathOf(module), isSure ? "sure" : "imported");
  }

  /** The path of the deployed module that an import means, as the engine resolves it. */
  pathOf(specifier) {
    const base = /^\.\.?\//.test(specifier) ? this.module.path : "";
    try {
      return decodeURIComponent(new URL(specifier, `file:///${base}`).pathname.slice(1));
    } catch {
      return specifier;
    }
  }

  notePackage(node, name, how) {
    this.found.packages.push({ name, how, ...this.place(node) });
  }
}

function read({ modules, known }) {
  const found = { imports: [], globals: [], wishes: [], packages: [], unread: [], defined: new Set() };
  for (const module of modules) {
    try {
      new Reader(module, new Set(known), found).read();
    } catch (error) {
      found.unread.push({ file: module.path, text: `${error.message}` });
    }
  }
  const { defined, ...rest } = found;
  return { ...rest, globals: found.globals.filter(({ name }) => !defined.has(name)) };
}

if (isMainThread) {
  // A thread, because only a thread can have a stack that is deep enough: "a" + "b" + … of a bundler is as deep as it is long.
  const reader = new Worker(import.meta.filename, { workerData: await text(process.stdin), resourceLimits: { stackSizeMb: STACK_MB } });
  reader.once("message", (answer) => process.stdout.write(answer));
} else {
  parentPort.postMessage(JSON.stringify(read(JSON.parse(workerData))));
}
