/** Rules of code that the linter has no name for. */
import ts from "typescript";
import type { Finding } from "./rules.ts";

export interface DeclaredName {
  readonly name: string;
  readonly line: number;
}

export function parse(source: string): ts.SourceFile {
  return ts.createSourceFile("source.ts", source, {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  });
}

/**
 * Names that a file declares: of types, functions, classes, members, parameters and variables.
 */
export function declaredNames(file: ts.SourceFile): DeclaredName[] {
  const names: DeclaredName[] = [];
  const visit = (node: ts.Node): void => {
    const { name } = node as { name?: ts.Node };
    const declares =
      name !== undefined &&
      (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) &&
      !ts.isPropertyAccessExpression(node) &&
      !ts.isImportSpecifier(node) &&
      !ts.isMetaProperty(node);
    if (declares) names.push({ name: name.text, line: lineOf(file, name) });
    ts.forEachChild(node, visit);
  };
  visit(file);
  return names;
}

/** Test names begin with a subject. */
const riddle = /^(?:what|who|whose|whoever|whatever|those|of) /i;
const testFunctions: ReadonlySet<string> = new Set(["test", "it", "describe", "suite", "t.test"]);

/** Every source that breaks a rule of `codeFindings` matches a pattern. Other sources may, too. */
const suspicious: readonly RegExp[] = [
  /(?<!\[)\]\s*=\s*\[(?!\])/,
  /\b(?:test|it|describe|suite)\(\s*["'`](?:what|who|whose|whoever|whatever|those|of) /i,
];

export function mayHaveCodeFindings(source: string): boolean {
  return suspicious.some((pattern) => pattern.test(source));
}

export function codeFindings(file: ts.SourceFile): Finding[] {
  const findings: Finding[] = [];
  const add = (node: ts.Node, rule: string) =>
    findings.push({ line: lineOf(file, node), rule, text: node.getText(file).split("\n")[0] as string });
  const visit = (node: ts.Node): void => {
    if (
      ts.isBinaryExpression(node) &&
      node.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
      isTupleGolf(file, node.left, node.right)
    )
      add(node, "one assignment a statement");
    if (ts.isVariableDeclaration(node) && isTupleGolf(file, node.name, node.initializer))
      add(node, "one declaration a variable");
    if (ts.isCallExpression(node) && testFunctions.has(node.expression.getText(file))) {
      const [name] = node.arguments;
      if (name !== undefined && ts.isStringLiteralLike(name) && riddle.test(name.text) && !name.text.endsWith("?"))
        add(name, "name of a test: begin with its subject");
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return findings;
}

function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}

/**
 * Several assignments in one line by a list on each side. Exchanging values is what lists are for.
 */
function isTupleGolf(file: ts.SourceFile, left: ts.Node, right: ts.Node | undefined): boolean {
  if (right === undefined || !ts.isArrayLiteralExpression(right) || right.elements.length < 2) return false;
  const targets = ts.isArrayLiteralExpression(left) || ts.isArrayBindingPattern(left) ? [...left.elements] : [];
  const from = new Set(right.elements.map((element) => element.getText(file)));
  return targets.length > 1 && targets.every((target) => isPlain(target) && !from.has(target.getText(file)));
}

/**
 * Whether a target has no default, and is neither a rest nor a hole. A list with one of these says
 * more than two assignments would.
 */
function isPlain(target: ts.Node): boolean {
  return ts.isBindingElement(target)
    ? target.initializer === undefined && target.dotDotDotToken === undefined
    : !ts.isSpreadElement(target) && !ts.isOmittedExpression(target);
}
