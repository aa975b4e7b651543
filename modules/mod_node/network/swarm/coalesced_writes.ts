/** Encrypted connections over TCP that write what is sent at a time in one go. */
import { Socket } from "node:net";
import type { ConnectionEncrypter, MessageStream } from "@libp2p/interface";
import { isUint8ArrayList, Uint8ArrayList } from "uint8arraylist";
import { replaceFrameDecoder } from "./noise_frames.ts";

/** The library writes length, bytes and tag of each frame apart: as many calls of the system, here and at the other end. */
export function coalesceWrites<E extends ConnectionEncrypter>(encrypter: E): E {
  for (const side of ["secureInbound", "secureOutbound"] as const) {
    const secure = encrypter[side];
    encrypter[side] = async (connection, options) => {
      const secured = await secure.call(encrypter, gather(connection), options);
      replaceFrameDecoder(secured.connection);
      return secured;
    };
  }
  return encrypter;
}

/** As the library's connections over sockets are inside; others stay as they are. */
type OverSocket = MessageStream & { readonly socket?: unknown; sendData?(data: unknown): unknown };

function gather(connection: MessageStream): MessageStream {
  const { socket, sendData } = connection as OverSocket;
  if (!(socket instanceof Socket) || sendData === undefined) return connection;
  (connection as OverSocket).sendData = (data) => {
    socket.cork();
    try {
      return sendData.call(connection, isUint8ArrayList(data) ? coalesce(data) : data);
    } finally {
      socket.uncork();
    }
  };
  return connection;
}

/** Pieces shorter than that are put together: to write one by itself costs more than to copy it. */
const short = 2048;

/** The same bytes in fewer pieces. */
export function coalesce(pieces: Iterable<Uint8Array>): Uint8ArrayList {
  const all = new Uint8ArrayList();
  let run: Uint8Array[] = [];
  const close = () => {
    if (run.length > 0) all.append(run.length === 1 ? (run[0] as Uint8Array) : Buffer.concat(run));
    run = [];
  };
  for (const piece of pieces) {
    if (piece.length < short) {
      run.push(piece);
      continue;
    }
    close();
    all.append(piece);
  }
  close();
  return all;
}
