import { whyResponsesAreListed } from "./patches/node/current_response.ts";
import { whyFilesAreStreams } from "./patches/node/file_pieces.ts";
import { whyBodiesAreInSmallPieces } from "./patches/node/large_body.ts";
import { whyReadingIsNotPaused } from "./patches/node/reading.ts";

/**
 * Returns one sentence for operators about each patch that this version of Node.js does not
 * support.
 */
export function patchNotices(): string[] {
  return [whyResponsesAreListed(), whyReadingIsNotPaused(), whyBodiesAreInSmallPieces(), whyFilesAreStreams()].filter(
    (notice) => notice !== undefined,
  );
}
