/** Rules of code that the linter has no name for. */
import ts from "typescript";
import type { Finding } from "./rules.ts";

/**
 * Several assignments in one line by a list on each side. Exchanging values is what lists are for.
 */
function isTupleGolf(left: ts.Node, right: ts.Node): boolean {
  if (!ts.isArrayLiteralExpression(right) || right.elements.length < 2) return false;
  const targets = ts.isArrayLiteralExpression(left) || ts.isArrayBindingPattern(left) ? [...left.elements] : [];
  const from = new Set(right.elements.map((element) => element.getText()));
  return targets.length > 1 && targets.every((target) => isPlain(target) && !from.has(target.getText()));
}

/**
 * A target without a default, a rest or a hole: with one of these a list says more than two
 * assignments would.
 */
function isPlain(target: ts.Node): boolean {
  return ts.isBindingElement(target)
    ? target.initializer === undefined && target.dotDotDotToken === undefined
    : !ts.isSpreadElement(target) && !ts.isOmittedExpression(target);
}

/** Test names begin with a subject. */
const riddle = /^(?:what|who|whose|whoever|whatever|those|of) /i;
const testFunctions: ReadonlySet<string> = new Set(["test", "it", "describe", "suite", "t.test"]);

export function codeFindings(file: ts.SourceFile): Finding[] {
  const findings: Finding[] = [];
  const add = (node: ts.Node, rule: string) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    findings.push({ line: line + 1, rule, text: node.getText(file).split("\n")[0] as string });
  };
  const visit = (node: ts.Node): void => {
    const isAssignment = ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken;
    if (isAssignment && isTupleGolf(node.left, node.right)) add(node, "one assignment a statement");
    if (ts.isVariableDeclaration(node) && node.initializer !== undefined && isTupleGolf(node.name, node.initializer))
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
