/**
 * Writes and reads texts as go-ipfs does: CIDs, Go's JSON, durations, sizes. Commands and modules
 * that present the node's results as text take these functions from `modhost/node`, so that the
 * texts are the same everywhere.
 */

export { kuboPath, pathOfUri } from "../content/resolver/path.ts";
export { multibaseNamed } from "../formats/cid/multibase.ts";
export { decodeText as decodeMultibaseText } from "../formats/cid/multibase_text.ts";
export { cidText, parseCid } from "../formats/cid/text.ts";
export { type CidForm, cidWriter, cidWriterFor, type WriteCid } from "../formats/cid/writer.ts";
export { parsePeerId, peerIdEncoder } from "../formats/peer_id.ts";
export { printJson } from "../storage/repo/json.ts";
export { byteText, textBytes } from "../util/byte_text.ts";
export { counted } from "../util/counted.ts";
export { formatDuration, parseDuration } from "../util/go/duration.ts";
export { GoText, goJson, goJsonText, JsonText, printable, quote } from "../util/go/text.ts";
export { sizeText } from "../util/size.ts";
