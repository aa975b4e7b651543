import { whyContentIsParsed } from "./formidable/content_skipper.ts";
import { whyAnswersAreListed } from "./node/current_answer.ts";
import { whyFilesAreStreams } from "./node/file_pieces.ts";
import { whyBodiesAreInSmallPieces } from "./node/large_body.ts";
import { whyReadingIsNotHeld } from "./node/reading.ts";

/** What operators should know of libraries that are not as they were: one sentence for each that the host does without. */
export function patchNotices(): string[] {
  return [
    whyContentIsParsed(),
    whyAnswersAreListed(),
    whyReadingIsNotHeld(),
    whyBodiesAreInSmallPieces(),
    whyFilesAreStreams(),
  ].filter((notice) => notice !== undefined);
}
