/** Limits of the sizes of pubsub messages. */

/** Maximum size of one RPC in bytes; go-ipfs resets a stream with a longer one. */
export const MAX_RPC_SIZE = 2 ** 20;
/**
 * Bytes in the RPC of one message in addition to topic and data: author, sequence number,
 * signature, and a key of any type.
 */
const ENVELOPE_SIZE = 4096;
/** Maximum size of topic and data together, in bytes. */
export const MAX_MESSAGE_SIZE = MAX_RPC_SIZE - ENVELOPE_SIZE;
/**
 * Maximum number of fields in one RPC, including those of its parts. Fields in the messages of
 * other nodes contain some bytes each; an RPC of empty fields only would take long to decode.
 */
export const MAX_RPC_FIELDS = 65_536;
