/** How much may be sent at once (network section 11). */

/** Bytes of one RPC; nodes of the reference hang up on longer ones. */
export const MAX_RPC_SIZE = 2 ** 20;
/** Bytes beside topic and data in the RPC of one message: who sent it, its number, its signature, keys of any kind. */
const ENVELOPE_SIZE = 4096;
/** Bytes of topic and data together. */
export const MAX_MESSAGE_SIZE = MAX_RPC_SIZE - ENVELOPE_SIZE;
