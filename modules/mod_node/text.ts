/**
 * Texts as go-ipfs writes and reads them: CIDs, Go's JSON, durations, sizes. Whoever puts the node's answers into words (a
 * command, a module) takes them from `modhost/node`, so that they are the same everywhere.
 */

export { pathOfUri } from "./content/resolver/path.ts";
export { multibaseNamed } from "./formats/cid/multibase.ts";
export { decodeText as decodeMultibaseText } from "./formats/cid/multibase_text.ts";
export { cidText, parseCid } from "./formats/cid/text.ts";
export { type CidForm, cidWriter, cidWriterFor, type WriteCid } from "./formats/cid/writer.ts";
export { parsePeerId, peerIdEncoder } from "./formats/peer_id.ts";
export { printJson } from "./storage/repo/json.ts";
export { formatDuration, parseDuration } from "./util/go/duration.ts";
export { GoText, goJson, goJsonText, JsonText, printable, quote } from "./util/go/text.ts";
export { sizeText } from "./util/size.ts";
