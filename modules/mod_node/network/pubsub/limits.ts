/** Sizes of what is sent over pubsub. */

/** Bytes of one RPC; go-ipfs resets a stream with a longer one. */
export const MAX_RPC_SIZE = 2 ** 20;
/** Bytes beside topic and data in the RPC of one message: author, sequence number, signature, and a key of any type. */
const ENVELOPE_SIZE = 4096;
/** Bytes of topic and data together. */
export const MAX_MESSAGE_SIZE = MAX_RPC_SIZE - ENVELOPE_SIZE;
/**
 * Fields in one RPC, those of its parts counted too. Messages that other nodes send have some bytes in each field; what
 * is nothing but empty fields would take long to decode.
 */
export const MAX_RPC_FIELDS = 65_536;
