/** Encrypted connections over TCP that write what is sent at a time in one go. */
import { Socket } from "node:net";
import type { ConnectionEncrypter, MessageStream } from "@libp2p/interface";

/** The library writes length, bytes and tag of each frame apart: as many calls of the system, here and at the other end. */
export function gathered<E extends ConnectionEncrypter>(encrypter: E): E {
  const { secureInbound, secureOutbound } = encrypter;
  encrypter.secureInbound = (connection, options) => secureInbound.call(encrypter, gather(connection), options);
  encrypter.secureOutbound = (connection, options) => secureOutbound.call(encrypter, gather(connection), options);
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
      return sendData.call(connection, data);
    } finally {
      socket.uncork();
    }
  };
  return connection;
}
