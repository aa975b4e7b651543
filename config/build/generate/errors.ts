/** Generates `docs/reference/errors.md`: a row for each entry of the error table. */
import { type ErrorEntry, errorTable } from "#core/util/errors.ts";
import { code, page, table } from "./markdown.ts";

export function errorsPage(): string {
  const rows = Object.entries(errorTable as Record<string, ErrorEntry>).map(([name, { status, expose, message }]) => [
    code(name),
    message,
    status === undefined ? "" : `${status}${expose === true ? ", with the message" : ""}`,
  ]);
  return page("Errors", "the error table", [
    introduction,
    table(["Code", "Message", "Response to an HTTP client"], rows),
  ]);
}

const introduction = `Every error that the host itself raises is a \`ModhostError\` with a stable \`code\`. Words in braces stand for values; they
are also in \`error.details\`, under the same names. Modules respond to requests with errors of their own by throwing
\`HttpError\`.
`;
