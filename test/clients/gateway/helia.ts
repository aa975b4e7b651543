/** `@helia/http`: a node without peers and blocks that gets everything over HTTP. */
import assert from "node:assert/strict";
import { CarBlockIterator } from "@ipld/car";
import { digestOf, keystream } from "#test/support/content.ts";
import { provided, type RoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";
import { type GatewayLibraries, onlyFrom } from "./libraries.ts";

const SIZE = 5_000_000;

/** The gateway fetches content that it does not have from the other node. */
export async function* heliaOverHttp(
  libraries: GatewayLibraries,
  { url, other, gatewayHost }: RoutingPair,
): AsyncGenerator<string, void, undefined> {
  const { CID, createHeliaLight, unixfs, withHTTP } = libraries;
  const content = Buffer.concat([...keystream(SIZE, 7)]);
  const form = new FormData();
  form.append("file", new File([content], "large"));
  const added = await fetch(`http://127.0.0.1:${other.http}/api/v0/add?cid-version=1`, { method: "POST", body: form });
  const file = CID.parse(((await added.json()) as { readonly Hash: string }).Hash);

  const helia = await withHTTP(createHeliaLight(), onlyFrom(url)).start();
  try {
    const files = unixfs(helia);
    assert.equal(digestOf(await Array.fromAsync(files.cat(file))), digestOf([content]));
    yield `${SIZE} bytes block by block, which the gateway fetched from a peer`;

    const { publicKey } = await libraries.ipns(helia).publish("page", file);
    const name = publicKey.toCID();
    const { Path } = await gatewayHost.value<{ Path: string }>(`name/resolve?arg=${name}`);
    assert.equal(Path, `/ipfs/${file}`);
    const byName = await fetch(`${url}/ipns/${name}`, { headers: { range: "bytes=2000000-2000099" } });
    assert.deepEqual(Buffer.from(await byName.arrayBuffer()), content.subarray(2_000_000, 2_000_100));
    yield `a name that it has published resolves to the content: ${name}`;
  } finally {
    await helia.stop();
  }

  const text = "of a provider that serves over HTTP";
  const announced = encodeURIComponent(JSON.stringify([`/ip4/127.0.0.1/tcp/${gatewayHost.http}/http`]));
  await gatewayHost.call(`config?arg=Addresses.AppendAnnounce&arg=${announced}&json=true`);
  const block = CID.parse(await provided(gatewayHost, text));
  const guided = await withHTTP(createHeliaLight(), { ...onlyFrom(url), recursiveGateways: [] }).start();
  try {
    assert.equal(Buffer.concat(await Array.fromAsync(unixfs(guided).cat(block))).toString(), text);
    yield "a block from a provider that routing v1 names, without a gateway of its own";
  } finally {
    await guided.stop();
  }

  const offline = await createHeliaLight().start();
  try {
    const archive = await fetch(`${url}/ipfs/${file}?format=car&dag-scope=entity`);
    let blocks = 0;
    for await (const { cid, bytes } of await CarBlockIterator.fromIterable(
      archive.body as ReadableStream<Uint8Array>,
    )) {
      await offline.blockstore.put(cid, bytes);
      blocks += 1;
    }
    assert.equal(digestOf(await Array.fromAsync(unixfs(offline).cat(file))), digestOf([content]));
    yield `the same from an archive of ${blocks} blocks`;
  } finally {
    await offline.stop();
  }
}
