/** `docs/reference/node-errors.md`: a row for each code of the failures of the node. */
import { readFileSync } from "node:fs";
import ts from "typescript";
import { type FailureCode, type FailureKind, failureKinds, failures } from "#modules/mod_node/util/errors.ts";
import { code, page, table } from "./markdown.ts";

/** Files of the table, which are the sections of the page. */
const subjects = { content: "Content", formats: "Formats", calls: "Calls", storage: "Storage", network: "Network" };

const statuses: Readonly<Record<FailureKind, string>> = { failure: "", client: "400", unavailable: "503" };

/** @param root path of the package, with a slash at its end */
export function nodeErrorsPage(root: string): string {
  const sections = Object.entries(subjects).flatMap(([name, title]) => {
    const rows = entriesOf(`${root}modules/mod_node/util/failures/${name}.ts`).map((entry) => [
      code(entry.code),
      failures[entry.code] === "{reason}" ? `*${entry.meaning}*` : failures[entry.code],
      statuses[failureKinds[entry.code] ?? "failure"],
    ]);
    return [`## ${title}`, table(["Code", "Message", "Status"], rows)];
  });
  return page("Errors of the node", "modules/mod_node/util/failures", [introduction, ...sections]);
}

interface Entry {
  readonly code: FailureCode;
  /** Text of the comment; empty without one. */
  readonly meaning: string;
}

/** Returns the entries of a file of the table, in the order of the file. */
function entriesOf(path: string): Entry[] {
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const entries: Entry[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node)) {
      const [comment] = ts.getJSDocCommentsAndTags(node);
      const meaning = comment === undefined ? "" : (ts.getTextOfJSDocComment(comment.comment) ?? "");
      entries.push({ code: node.name.getText(file) as FailureCode, meaning });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return entries;
}

const introduction = `Every failure of the node is a \`NodeError\` with one of these codes. \`NodeError.is(error)\` recognizes them. The
messages are those of go-ipfs wherever it has one. Words in braces stand for values, which \`error.details\` has under the same names.
Where messages of one code differ, its meaning stands in italics.

\`error.kind\` says who is at fault: \`failure\`, \`client\` for an invalid call, or \`unavailable\` for a state that may pass. The
RPC API responds with status 500, 400 or 503; the column shows the last two. A failure that was caused by another one has it as
\`error.cause\`. In a few places go-ipfs has another message for the same failure, or responds with another status. Such a failure has
the code of this table, and no \`details\`.`;
