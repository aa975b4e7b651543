/**
 * Reads the tokens of a source file. That takes a fifth of the time of a parser, which reads only
 * the files that may break a rule of names or code.
 */
import ts from "typescript";

export interface TextRange {
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  readonly comments: readonly TextRange[];
  /** Identifiers, but for those behind a dot. Declared names are among them. */
  readonly identifiers: ReadonlySet<string>;
  /** Names of the interfaces, type aliases, classes and enumerations that the file exports. */
  readonly exportedTypes: ReadonlySet<string>;
}

const { SyntaxKind } = ts;
const scanner = ts.createScanner(ts.ScriptTarget.Latest, false);

const typeKeywords: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.InterfaceKeyword,
  SyntaxKind.TypeKeyword,
  SyntaxKind.ClassKeyword,
  SyntaxKind.EnumKeyword,
]);

/** Keywords that may stand between `export` and the keyword of a type. */
const modifiers: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.DeclareKeyword,
  SyntaxKind.AbstractKeyword,
  SyntaxKind.DefaultKeyword,
  SyntaxKind.ConstKeyword,
]);

/** Tokens, besides names, that end an expression. */
const expressionEnds: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.NumericLiteral,
  SyntaxKind.BigIntLiteral,
  SyntaxKind.StringLiteral,
  SyntaxKind.RegularExpressionLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateTail,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
  SyntaxKind.CloseBraceToken,
  SyntaxKind.PlusPlusToken,
  SyntaxKind.MinusMinusToken,
  SyntaxKind.ThisKeyword,
  SyntaxKind.SuperKeyword,
  SyntaxKind.NullKeyword,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
]);

export function scan(source: string): Scan {
  const comments: TextRange[] = [];
  const identifiers = new Set<string>();
  const exportedTypes = new Set<string>();
  /** How many braces are open in each template expression around the current token. */
  const openBraces: number[] = [];
  let previous: ts.SyntaxKind = SyntaxKind.Unknown;
  let isExported = false;
  scanner.setText(source);
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind <= SyntaxKind.LastTriviaToken) {
      if (isComment(kind)) comments.push({ start: scanner.getTokenStart(), end: scanner.getTokenEnd() });
      continue;
    }
    if (isSlash(kind) && !endsExpression(previous)) kind = scanner.reScanSlashToken();
    else kind = scanTemplate(kind, openBraces);
    if (isName(kind)) {
      if (previous !== SyntaxKind.DotToken && previous !== SyntaxKind.QuestionDotToken)
        identifiers.add(scanner.getTokenText());
      if (isExported && typeKeywords.has(previous)) exportedTypes.add(scanner.getTokenText());
    }
    isExported = kind === SyntaxKind.ExportKeyword || (isExported && (typeKeywords.has(kind) || modifiers.has(kind)));
    previous = kind;
  }
  return { comments, identifiers, exportedTypes };
}

/**
 * Counts the braces of template expressions: after the last one, the text of the template
 * continues.
 */
function scanTemplate(kind: ts.SyntaxKind, openBraces: number[]): ts.SyntaxKind {
  const innermost = openBraces.length - 1;
  if (kind === SyntaxKind.TemplateHead) openBraces.push(0);
  if (innermost < 0) return kind;
  if (kind === SyntaxKind.OpenBraceToken) openBraces[innermost] = (openBraces[innermost] as number) + 1;
  if (kind !== SyntaxKind.CloseBraceToken) return kind;
  if (openBraces[innermost] !== 0) {
    openBraces[innermost] = (openBraces[innermost] as number) - 1;
    return kind;
  }
  const template = scanner.reScanTemplateToken(false);
  if (template === SyntaxKind.TemplateTail) openBraces.pop();
  return template;
}

const isComment = (kind: ts.SyntaxKind): boolean =>
  kind === SyntaxKind.SingleLineCommentTrivia || kind === SyntaxKind.MultiLineCommentTrivia;

const isSlash = (kind: ts.SyntaxKind): boolean =>
  kind === SyntaxKind.SlashToken || kind === SyntaxKind.SlashEqualsToken;

/** Words such as `type` and `of` are names where they are not used as keywords. */
const isName = (kind: ts.SyntaxKind): boolean =>
  kind === SyntaxKind.Identifier ||
  kind === SyntaxKind.PrivateIdentifier ||
  (kind > SyntaxKind.LastReservedWord && kind <= SyntaxKind.LastKeyword);

/** Whether a slash behind this token divides. Elsewhere it begins a regular expression. */
const endsExpression = (kind: ts.SyntaxKind): boolean => isName(kind) || expressionEnds.has(kind);
