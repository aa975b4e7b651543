/**
 * Writes declarations as Markdown: a heading, the text of the comment, and the members as a table,
 * as sections or as code.
 */
import ts from "typescript";
import { anchor, block, code, prose, table } from "./markdown.ts";
import type { Exported } from "./sources.ts";

/** Addresses of headings by the name of a type. */
export type Links = ReadonlyMap<string, string>;

/** Returns the addresses of these declarations on one page. */
export function linksTo(page: string, all: readonly Exported[]): [string, string][] {
  return all.map(({ name }) => [name, `${page}#${anchor(name)}`]);
}

/** Sorts functions before the types that they take and return. */
export function calledFirst(all: readonly Exported[]): Exported[] {
  const isCalled = ({ node }: Exported) => ts.isFunctionDeclaration(node);
  return [...all.filter(isCalled), ...all.filter((exported) => !isCalled(exported))];
}

/** An interface or class with more methods than this has a heading for each. */
const methodsInTable = 6;

/**
 * An interface whose members have no comments is shown as code. With more members than this, only
 * its own comment is shown.
 */
const membersInCode = 10;

type Member = ts.TypeElement | ts.ClassElement;

/** Returns the section of one declaration, under a heading of the third level. */
export function describe({ name, node }: Exported, links: Links): string {
  const others = new Map([...links].filter(([other]) => other !== name));
  return [`### ${name}`, commentOf(node), ...contentOf(node, others)].filter((part) => part !== "").join("\n\n");
}

function contentOf(node: ts.Declaration, links: Links): string[] {
  if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) return membersOf(node, links);
  if (ts.isFunctionDeclaration(node)) return signature(oneLine(headOf(node)), links);
  if (ts.isTypeAliasDeclaration(node)) {
    const names = literalsOf(node.type);
    if (names.length > 8) return [names.map(code).join(", ")];
    return signature(node.getText().replace(/^export /, ""), links);
  }
  if (ts.isVariableDeclaration(node)) return [];
  return signature(node.getText(), links);
}

function membersOf(node: ts.InterfaceDeclaration | ts.ClassDeclaration, links: Links): string[] {
  const inherited = (node.heritageClauses ?? []).map((clause) => {
    const verb = clause.token === ts.SyntaxKind.ExtendsKeyword ? "Extends" : "Implements";
    const shown = clause.types
      .filter((type) => hiddenBase(type) === undefined)
      .map((type) => linked(type.getText(), links));
    return shown.length === 0 ? "" : `${verb} ${shown.join(", ")}.`;
  });
  const bases = (node.heritageClauses ?? []).flatMap((clause) => clause.types.map(hiddenBase));
  const all = [...bases, node].flatMap((part) => [...((part?.members ?? []) as Iterable<Member>)]);
  const members = all.filter(isPublic);
  if (members.length === 0) return inherited;
  if (members.every((member) => commentOf(member) === "") && ts.isInterfaceDeclaration(node)) {
    return members.length > membersInCode ? [] : signature(node.getText().replace(/^export /, ""), links);
  }
  const methods = members.filter(isCallable);
  if (methods.length <= methodsInTable) return [...inherited, memberTable(members, links)];
  const fields = members.filter((member) => !isCallable(member));
  const named = methods.filter((member) => !ts.isConstructorDeclaration(member));
  const sections = [...Map.groupBy(named, nameOf)].flatMap(([name, overloads]) => [
    `#### ${name}`,
    ...signature(overloads.map((member) => oneLine(headOf(member))).join("\n"), new Map()),
    overloads.map(commentOf).join(" ").trim(),
    seeAlso(overloads.map((member) => member.getText()).join(" "), links),
  ]);
  return [...inherited, ...(fields.length === 0 ? [] : [memberTable(fields, links)]), ...sections];
}

/** Returns a base that is not exported: its members count as those of the interface. */
function hiddenBase(type: ts.ExpressionWithTypeArguments): ts.InterfaceDeclaration | undefined {
  const own = type.getSourceFile().statements.filter(ts.isInterfaceDeclaration);
  const found = own.find(({ name }) => name.text === type.expression.getText());
  const isExported = found?.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
  return isExported ? undefined : found;
}

function memberTable(members: readonly Member[], links: Links): string {
  const rows = members.map((member) => {
    const head = oneLine(headOf(member));
    const type = "type" in member && member.type !== undefined ? oneLine((member.type as ts.Node).getText()) : "";
    const shown = type !== "" && head.endsWith(`: ${type}`) ? head.slice(0, -type.length - 2) : head;
    return [code(shown), linked(type, links), commentOf(member)];
  });
  return table(["Member", "Type", "Meaning"], rows);
}

function signature(text: string, links: Links): string[] {
  return [block(text), seeAlso(text, links)];
}

/** Returns links to the types that a text mentions. */
function seeAlso(text: string, links: Links): string {
  const named = [...links].filter(([name]) => new RegExp(`\\b${name}\\b`).test(text));
  return named.length === 0 ? "" : `Types: ${named.map(([name, address]) => `[${code(name)}](${address})`).join(", ")}`;
}

/** Returns a type as code, in which the names of other types are links. */
function linked(type: string, links: Links): string {
  const names = [...type.matchAll(/\w+/g)].map(([name]) => name).filter((name) => links.has(name));
  if (names.length === 0) return code(type);
  return type
    .split(new RegExp(`\\b(${[...new Set(names)].join("|")})\\b`))
    .map((part) => (links.has(part) ? `[${code(part)}](${links.get(part)})` : code(part.trim())))
    .filter((part) => part !== "")
    .join(" ");
}

/** Returns the declaration without its comment, modifiers and body. */
function headOf(node: ts.Node): string {
  const body = "body" in node && node.body !== undefined ? (node.body as ts.Node).getStart() : undefined;
  const value = ts.isPropertyDeclaration(node) ? node.initializer?.getStart() : undefined;
  const text = node.getSourceFile().text.slice(node.getStart(), body ?? value ?? node.end);
  return text
    .trim()
    .replace(/^(?:(?:export|readonly|async|static|function) )+/, "")
    .replace(/(?:;|=)$/, "")
    .trim();
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("( ", "(").replaceAll(/,? \)/g, ")");
}

/**
 * Returns the text of a declaration's comment, with each paragraph and each item of a list on a
 * line of its own.
 */
export function commentOf(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).slice(-1);
  if (comment === undefined) return "";
  const said = ts.getTextOfJSDocComment(comment.comment) ?? "";
  const thrown = [...(comment.tags ?? [])].filter(isThrows).map((tag) => {
    const type = tag.typeExpression?.type.getText();
    return `Throws ${type === undefined ? "" : `${code(type)}: `}${ts.getTextOfJSDocComment(tag.comment) ?? ""}.`;
  });
  return prose([said.replaceAll(/\n(?![\n-])/g, " "), ...thrown].join("\n\n").trim());
}

const isThrows = (tag: ts.JSDocTag): tag is ts.JSDocThrowsTag => tag.kind === ts.SyntaxKind.JSDocThrowsTag;

function literalsOf(type: ts.TypeNode): string[] {
  if (!ts.isUnionTypeNode(type)) return [];
  const literals = type.types.filter((part) => ts.isLiteralTypeNode(part) && ts.isStringLiteral(part.literal));
  return literals.length === type.types.length ? literals.map((part) => part.getText().slice(1, -1)) : [];
}

function isCallable(member: Member): boolean {
  return ts.isMethodSignature(member) || ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member);
}

function nameOf(member: Member): string {
  return member.name?.getText() ?? "constructor";
}

function isPublic(member: Member): boolean {
  const isHidden =
    member.name !== undefined && (ts.isPrivateIdentifier(member.name) || ts.isComputedPropertyName(member.name));
  return !isHidden && (ts.getCombinedModifierFlags(member as ts.Declaration) & ts.ModifierFlags.Private) === 0;
}
