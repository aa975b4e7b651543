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

const introduction = `For authors and operators: every error that the host itself raises is a \`ModhostError\` with a stable \`code\`. A word in braces stands for
the value in \`error.details\` with the same name. Modules raise errors of their own with \`HttpError\`.`;
