/**
 * A Helia node that serves the commands of /api/v0 that the scenes need. It runs in a folder that
 * has helia, @helia/unixfs and, for names and messages, @helia/ipns and @libp2p/gossipsub, after
 * the source of `start_helia.mjs`. It reports its address and its abilities to its parent. Helia
 * has no mounted streams: here a handler of libp2p carries them.
 */
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { unixfs } from "@helia/unixfs";
import { identify } from "@libp2p/identify";
import { kadDHT } from "@libp2p/kad-dht";
import { peerIdFromPrivateKey, peerIdFromString } from "@libp2p/peer-id";
import { ping } from "@libp2p/ping";
import { multiaddr } from "@multiformats/multiaddr";
import { CID } from "multiformats/cid";

const [gossip, naming] = await Promise.all(
  ["@libp2p/gossipsub", "@helia/ipns"].map((name) => import(name).catch(() => undefined)),
);
const node = await startHelia({
  services: {
    identify: identify(),
    ping: ping(),
    dht: kadDHT({ protocol: "/ipfs/lan/kad/1.0.0", clientMode: false, peerInfoMapper: (peer) => peer }),
    ...(gossip === undefined ? {} : { pubsub: gossip.gossipsub() }),
  },
});
const { libp2p } = node;
const { dht, pubsub } = libp2p.services;
const files = unixfs(node);
const names = naming?.ipns(node);
const topics = new Map();
pubsub?.addEventListener("message", ({ detail }) => {
  for (const send of topics.get(detail.topic) ?? []) send(detail);
});

const multibase = (bytes) => `u${Buffer.from(bytes).toString("base64url")}`;
const plain = (text) => Buffer.from(text.slice(1), "base64url").toString();
const textOf = (address) => address.toString();
const withoutPeer = (address) => textOf(address).replace(/\/p2p\/[^/]+$/, "");
const peerOf = (text) => peerIdFromString(text.split("/").at(-1));

/** Resolves a path such as `/ipfs/CID/a/b`. */
function located(path) {
  const [, , root, ...names] = path.split("/");
  return [CID.parse(root), names.length === 0 ? {} : { path: names.join("/") }];
}

async function* added(form) {
  const sources = form
    .getAll("file")
    .map((file) => ({ path: decodeURIComponent(file.name), content: Readable.fromWeb(file.stream()) }));
  for await (const { path, cid } of files.addAll(sources)) yield { Name: path ?? "", Hash: String(cid) };
}

async function* listed(path) {
  const [cid, options] = located(path);
  const links = [];
  for await (const { name, cid: hash } of files.ls(cid, options)) links.push({ Name: name, Hash: String(hash) });
  yield { Objects: [{ Hash: path, Links: links }] };
}

async function* found(events, typed) {
  for await (const event of events) {
    for (const { id, multiaddrs } of typed(event)) {
      yield {
        Type: event.name === "PROVIDER" ? 4 : 2,
        Responses: [{ ID: String(id), Addrs: multiaddrs.map(withoutPeer) }],
      };
    }
  }
}

async function* pinged(id, count) {
  yield { Success: true, Time: 0, Text: `PING ${id}.` };
  let total = 0;
  for (let left = count; left > 0; left -= 1) {
    const milliseconds = await libp2p.services.ping.ping(peerOf(id));
    total += milliseconds;
    yield { Success: true, Time: Math.max(1, Math.round(milliseconds * 1e6)), Text: "" };
  }
  yield { Success: true, Time: 0, Text: `Average latency: ${(total / count).toFixed(2)}ms` };
}

async function identity(id) {
  if (id !== undefined) {
    const { addresses, metadata, protocols } = await libp2p.peerStore.get(peerOf(id));
    const said = (name) => Buffer.from(metadata.get(name) ?? "").toString();
    return {
      ID: id,
      Addresses: addresses.map(({ multiaddr: address }) => `${withoutPeer(address)}/p2p/${id}`),
      AgentVersion: said("AgentVersion"),
      ProtocolVersion: said("ProtocolVersion"),
      Protocols: protocols,
    };
  }
  const { userAgent } = libp2p.components.nodeInfo;
  return {
    ID: String(libp2p.peerId),
    Addresses: libp2p.getMultiaddrs().map(textOf),
    AgentVersion: userAgent,
    ProtocolVersion: "ipfs/0.1.0",
    Protocols: libp2p.getProtocols(),
  };
}

/** Connects a stream of a peer with a local socket. */
function carry(stream, socket) {
  const outward = pipeline(socket, async (pieces) => {
    for await (const bytes of pieces) if (!stream.send(bytes)) await stream.onDrain();
    await stream.close();
  });
  const inward = pipeline(async function* () {
    for await (const pieces of stream) yield pieces.subarray();
  }, socket);
  Promise.all([outward, inward]).catch((error) => {
    stream.abort(error);
    socket.destroy();
  });
}

const portOf = (address) => Number(address.split("/").at(-1));
/** Entries of `p2p/ls`, each with a function that closes it. */
const mounts = [];

/** Result of each command: one value, or a stream of values or bytes. */
const commands = {
  id: ({ arg }) => identity(arg),
  "swarm/peers": () => ({
    Peers: libp2p.getConnections().map(({ remotePeer, remoteAddr }) => ({
      Peer: String(remotePeer),
      Addr: withoutPeer(remoteAddr),
    })),
  }),
  async "swarm/connect"({ arg }) {
    await libp2p.dial(multiaddr(arg));
    return { Strings: [`connect ${peerOf(arg)} success`] };
  },
  async "swarm/disconnect"({ arg }) {
    await libp2p.hangUp(peerOf(arg));
    return { Strings: [`disconnect ${peerOf(arg)} success`] };
  },
  ping: ({ arg, count }) => pinged(arg, Number(count)),
  add: (_, form) => added(form),
  cat: ({ arg }) => files.cat(...located(arg)),
  ls: ({ arg }) => listed(arg),
  async "pin/add"({ arg }) {
    for await (const _ of node.pins.add(CID.parse(arg)));
    return { Pins: [arg] };
  },
  "dht/findpeer": ({ arg }) =>
    found(dht.findPeer(peerOf(arg)), ({ name, peer }) => (name === "FINAL_PEER" ? [peer] : [])),
  "dht/findprovs": ({ arg }) =>
    found(dht.findProviders(CID.parse(arg)), ({ name, providers }) => (name === "PROVIDER" ? providers : [])),
  async *"dht/provide"({ arg }) {
    for await (const { name } of dht.provide(CID.parse(arg))) yield { Type: 1, Extra: name, Responses: null };
  },
  "pubsub/ls": () => ({ Strings: pubsub.getTopics().map((topic) => multibase(Buffer.from(topic))) }),
  "pubsub/peers": ({ arg }) => ({ Strings: pubsub.getSubscribers(plain(arg)).map(String) }),
  async "pubsub/pub"({ arg }, form) {
    await pubsub.publish(plain(arg), new Uint8Array(await form.get("file").arrayBuffer()));
    return undefined;
  },
  "pubsub/sub": ({ arg }) => {
    const topic = plain(arg);
    const stream = new Readable({ read() {} });
    const send = ({ from, data, sequenceNumber }) =>
      stream.push(
        `${JSON.stringify({ from: String(from), data: multibase(data), seqno: multibase(Buffer.from(String(sequenceNumber))), topicIDs: [arg] })}\n`,
      );
    const all = topics.get(topic) ?? new Set();
    topics.set(topic, all.add(send));
    stream.on("close", () => all.delete(send));
    pubsub.subscribe(topic);
    return stream;
  },
  config: () => ({}),
  async "p2p/listen"({ arg: [protocol, target] }) {
    await libp2p.handle(protocol, (stream) => carry(stream, connect({ port: portOf(target), allowHalfOpen: true })));
    const close = () => libp2p.unhandle(protocol);
    mounts.push({ Protocol: protocol, ListenAddress: `/p2p/${libp2p.peerId}`, TargetAddress: target, close });
    return undefined;
  },
  async "p2p/forward"({ arg: [protocol, , target] }) {
    const local = createTcpServer({ allowHalfOpen: true, pauseOnConnect: true }, async (socket) => {
      carry(await libp2p.dialProtocol(peerOf(target), protocol), socket);
    });
    await new Promise((resolve) => local.listen(0, "127.0.0.1", resolve));
    const address = `/ip4/127.0.0.1/tcp/${local.address().port}`;
    mounts.push({ Protocol: protocol, ListenAddress: address, TargetAddress: target, close: () => local.close() });
    return undefined;
  },
  "p2p/ls": () => ({ Listeners: mounts.map(({ close: _, ...shown }) => shown) }),
  async "p2p/close"() {
    const closed = mounts.splice(0);
    for (const { close } of closed) await close();
    return closed.length;
  },
  async "key/gen"({ arg }) {
    const key = await node.keychain.generateKey(arg);
    return { Name: arg, Id: String(peerIdFromPrivateKey(key)) };
  },
  async "name/publish"({ arg, key }) {
    const { name } = await names.publish(key, arg);
    return { Name: name, Value: arg };
  },
  async "name/resolve"({ arg, nocache }) {
    let best;
    for await (best of names.resolve(peerIdFromString(arg).toCID(), { nocache: nocache === "true" }));
    return { Path: best.value };
  },
};

async function serve(request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const command = commands[pathname.replace("/api/v0/", "")];
  if (command === undefined) {
    response.writeHead(404).end();
    return;
  }
  try {
    const { "content-type": type } = request.headers;
    const form = type?.startsWith("multipart/")
      ? await new Response(Readable.toWeb(request), { headers: { "content-type": type } }).formData()
      : undefined;
    const { arg, ...options } = Object.fromEntries(searchParams);
    const args = searchParams.getAll("arg");
    const result = await command({ ...options, arg: args.length > 1 ? args : arg }, form);
    if (result instanceof Readable) {
      response.flushHeaders();
      await pipeline(result, response);
    } else if (result?.[Symbol.asyncIterator] === undefined) {
      response.end(result === undefined ? "" : JSON.stringify(result));
    } else await pipeline(texts(result), response);
  } catch (error) {
    if (!response.headersSent) response.writeHead(500);
    response.end(String(error));
  }
}

async function* texts(values) {
  for await (const value of values) yield value instanceof Uint8Array ? value : `${JSON.stringify(value)}\n`;
}

const server = createServer((request, response) => void serve(request, response));
const speaks = [
  "dht",
  "streams",
  ...(pubsub === undefined ? [] : ["pubsub"]),
  ...(naming === undefined ? [] : ["names"]),
];
server.listen(0, "127.0.0.1", () => process.send?.({ url: `http://127.0.0.1:${server.address().port}`, speaks }));
process.on("disconnect", () => process.exit());
