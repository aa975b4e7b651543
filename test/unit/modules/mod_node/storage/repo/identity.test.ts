import assert from "node:assert/strict";
import { test } from "node:test";
import { generateKeyPair, privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { parsePeerId, peerIdEncoder } from "#node/formats/peer_id.ts";
import { createIdentity, publicKeyText, readIdentity } from "#node/storage/repo/identity.ts";

/** An identity that go-ipfs made. */
const recorded = {
  PeerID: "12D3KooWDQ5o42iGhdvoi3H9zwza4ex9BrF43vQcspYX2L8YibZe",
  PrivKey: "CAESQCgrQ+k9hBugdvQBRDX6Zl2+QIIs1V+o5EjmPPxs3ZJkNTZLTfhgWt1mRzHaj6Pc5E76/eNY8wxHv7RkSCebJCU=",
};

test("an identity of go-ipfs is read, and new ones have the same format", async () => {
  const identity = readIdentity(recorded);
  assert.equal(identity.peerId.toString(), recorded.PeerID);
  assert.match(publicKeyText(identity), /^CAESI.{43}$/);
  const made = await createIdentity();
  assert.match(made.PeerID, /^12D3KooW.{44}$/);
  assert.equal(Buffer.from(made.PrivKey, "base64").length, 68);
  assert.equal(readIdentity(made).peerId.toString(), made.PeerID);
});

test("RSA keys of existing repos are read", async () => {
  const key = await generateKeyPair("RSA", 2048);
  const PeerID = peerIdFromPrivateKey(key).toString();
  assert.match(PeerID, /^Qm/);
  const identity = readIdentity({ PeerID, PrivKey: Buffer.from(privateKeyToProtobuf(key)).toString("base64") });
  assert.equal(identity.privateKey.type, "RSA");
});

test("an identity that is missing, malformed or of another key is refused", () => {
  const refused: readonly (readonly [Partial<typeof recorded>, RegExp])[] = [
    [{ PeerID: "" }, /^identity was not set in config \(was 'ipfs init' run\?\)$/],
    [{ PeerID: "xyz" }, /^peer ID invalid: failed to parse peer ID: selected encoding not supported$/],
    [{ PrivKey: "" }, /^missing private key for node ID: 12D3KooWDQ5o42iGhdvoi3H9zwza4ex9BrF43vQcspYX2L8YibZe$/],
    [{ PrivKey: "!x" }, /^illegal base64 data at input byte 0$/],
    [{ PrivKey: "xxxx" }, /^the private key in the config cannot be read: /],
    [
      { PeerID: "QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN" },
      /^private key in config does not match id: QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN != 12D3KooWDQ/,
    ],
  ];
  for (const [part, message] of refused) {
    assert.throws(
      () => readIdentity({ ...recorded, ...part }),
      (error: Error) => message.test(error.message),
      String(message),
    );
  }
});

test("peer ids are read and written in every form", () => {
  const id = parsePeerId(recorded.PeerID);
  const forms = ["b58mh", "v0", "k", "base36", "b", "f"].map((base) => peerIdEncoder(base)(id));
  assert.equal(forms[0], recorded.PeerID);
  assert.equal(forms[2]?.length, 62);
  for (const form of forms) assert.ok(parsePeerId(form).equals(id), form);
  assert.throws(() => peerIdEncoder("nope"), { message: "Unsupported multibase encoding: nope" });
  assert.throws(() => peerIdEncoder(""), { message: "Empty multibase encoding" });
  assert.throws(() => parsePeerId("bafkqaaa"), { message: "can't convert CID of type raw to a peer ID" });
  assert.throws(() => parsePeerId("x"), { message: "failed to parse peer ID: cid too short" });
});
