// Prints the calls in a folder's files of a language (typescript or javascript), and then, for each requested call, the places that
// declare its name according to TypeScript's compiler. The folder contains one folder per repository.
//
//   node benches/definitions.js LANGUAGE FOLDER < ASKED
//
// First, one line for each call, [path, first line, last line, line of the name, column of the name, name], and an empty line.
// Then, for each such line that is read, a line with the places: [[path, line], ...]. Lines are 0-based.

const fs = require("fs");
const path = require("path");
const readline = require("readline");
const ts = require("typescript");

const isJavaScript = process.argv[2] === "javascript";
const root = path.resolve(process.argv[3]);
const endings = isJavaScript ? /\.(js|jsx|mjs|cjs)$/ : /\.tsx?$/;

function filesBelow(folder) {
  const entries = fs.readdirSync(folder, { withFileTypes: true });
  entries.sort((one, other) => (one.name < other.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(file);
    return endings.test(entry.name) ? [file] : [];
  });
}

const options = {
  allowJs: isJavaScript, jsx: ts.JsxEmit.Preserve, module: ts.ModuleKind.ESNext, noResolve: false, strict: true,
  moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ESNext, types: [],
};
const programs = new Map();

function programOf(file) {
  const repository = path.relative(root, file).split(path.sep)[0];
  if (!programs.has(repository)) {
    const folder = path.join(root, repository);
    // Many packages in TypeScript import their own files from the folder `src`.
    const paths = isJavaScript ? {} : { baseUrl: folder, paths: { "*": ["./*", "./src/*"] } };
    programs.set(repository, ts.createProgram(filesBelow(folder), { ...options, ...paths }));
  }
  return programs.get(repository);
}

function nameOf(node) {
  if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return null;
  const callee = node.expression;
  if (ts.isIdentifier(callee)) return callee;
  return ts.isPropertyAccessExpression(callee) && ts.isIdentifier(callee.name) ? callee.name : null;
}

function* callsOf(source, node) {
  const name = nameOf(node);
  if (name) {
    const at = (place) => source.getLineAndCharacterOfPosition(place);
    const { line, character } = at(name.getStart(source));
    yield [at(node.getStart(source)).line, at(node.getEnd()).line, line, character, name.text];
  }
  const children = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* callsOf(source, child);
}

function placesOf(file, line, column) {
  const program = programOf(file);
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const place = source.getPositionOfLineAndCharacter(line, column);
  let node = source;
  while (true) {
    const inner = ts.forEachChild(node, (child) => (child.getStart(source) <= place && place < child.getEnd() ? child : undefined));
    if (!inner) break;
    node = inner;
  }
  let symbol = checker.getSymbolAtLocation(node);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  // `{ f }` refers to the variable.
  const declared = symbol && symbol.declarations && symbol.declarations[0];
  if (declared && ts.isShorthandPropertyAssignment(declared)) symbol = checker.getShorthandAssignmentValueSymbol(declared);
  return ((symbol && symbol.declarations) || []).map((declaration) => {
    const declaredIn = declaration.getSourceFile();
    const start = (declaration.name || declaration).getStart(declaredIn);
    return [path.relative(root, declaredIn.fileName), declaredIn.getLineAndCharacterOfPosition(start).line];
  });
}

for (const file of filesBelow(root)) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.ESNext, true);
  for (const call of callsOf(source, source)) console.log(JSON.stringify([path.relative(root, file), ...call]));
}
console.log("");
readline.createInterface({ input: process.stdin }).on("line", (asked) => {
  const [file, , , line, column] = JSON.parse(asked);
  console.log(JSON.stringify(placesOf(path.join(root, file), line, column)));
});
