/** Sizes of what is sent over pubsub. */

/** Bytes of one RPC; go-ipfs resets a stream with a longer one. */
export const MAX_RPC_SIZE = 2 ** 20;
/** Bytes beside topic and data in the RPC of one message: author, sequence number, signature, and a key of any type. */
const ENVELOPE_SIZE = 4096;
/** Bytes of topic and data together. */
export const MAX_MESSAGE_SIZE = MAX_RPC_SIZE - ENVELOPE_SIZE;
