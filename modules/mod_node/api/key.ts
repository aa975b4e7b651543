/** The keys that names are published with. */
import { type PeerId, peerIdEncoder } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import type { NamedKey } from "../storage/keystore/keystore.ts";
import { rotateIdentity } from "../storage/keystore/rotate.ts";
import { readAll } from "../util/async/read_all.ts";
import { NodeError } from "../util/errors.ts";
import { type ByteSource, type CallOptions, piecesOf } from "./common.ts";

export interface KeyOptions extends CallOptions {
  /** How ids are written: `b58mh`, or the multibase of a CID such as `base32`; `base36` by default. */
  readonly ipnsBase?: string | undefined;
}

/** Type and size of a new key. */
export interface KeyForm {
  /** `ed25519`, which is the default, or `rsa`. */
  readonly type?: string | undefined;
  /** Bits of an RSA key; 2048 by default. */
  readonly size?: number | undefined;
}

export interface KeyRotateOptions extends CallOptions, KeyForm {
  /** Name under which the old identity is kept as a key. */
  readonly oldkey: string | undefined;
}

export interface Key {
  readonly name: string;
  /** The IPNS name of the key. */
  readonly id: string;
}

export interface KeyRenameResult {
  readonly id: string;
  readonly was: string;
  readonly now: string;
  /** Whether an existing key of the new name was replaced. */
  readonly overwrite: boolean;
}

export interface KeyApi {
  gen(name: string, options?: KeyOptions & KeyForm): Promise<Key>;
  /** The node's own key, `self`, then the others by name. */
  list(options?: KeyOptions): Promise<Key[]>;
  /** @throws NodeError if there is no such key */
  info(name: string, options?: KeyOptions): Promise<Key>;
  rename(
    was: string,
    now: string,
    options?: KeyOptions & { readonly force?: boolean | undefined },
  ): Promise<KeyRenameResult>;
  rm(name: string, options?: KeyOptions): Promise<Key>;
  /** Exports a private key, as unencrypted libp2p protobuf. */
  export(name: string, options?: CallOptions): Promise<Uint8Array>;
  /** Imports an exported key of at most 64 KiB. */
  import(name: string, file: ByteSource, options?: KeyOptions): Promise<Key>;
  /** Creates a new identity, used from the next start on, and keeps the old one as a key. */
  rotate(options: KeyRotateOptions): Promise<void>;
}

/** Bytes. */
const MAX_KEY_FILE = 64 * 1024;

const usualBase = "base36";

/** @throws NodeError for an unknown base */
function encoder({ ipnsBase = usualBase }: KeyOptions): (key: NamedKey) => Key {
  const encode: (id: PeerId) => string = peerIdEncoder(ipnsBase);
  return ({ name, id }) => ({ name, id: encode(id) });
}

const formOf = ({ type = "ed25519", size }: KeyForm) => ({ type, size });

export function keyApi({ keys, repo }: LowLevelNode): KeyApi {
  return {
    async gen(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.generate(name, formOf(options)));
    },
    async list(options = {}) {
      const shown = encoder(options);
      return (await keys.list()).map(shown);
    },
    async info(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.named(name));
    },
    async rename(was, now, options = {}) {
      const shown = encoder(options);
      const { overwritten: overwrite, ...key } = await keys.rename(was, now, options.force === true);
      return { id: shown(key).id, was, now, overwrite };
    },
    async rm(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.remove(name));
    },
    async export(name) {
      return keys.export(name);
    },
    async import(name, file, options = {}) {
      const shown = encoder(options);
      const tooLong = () => new NodeError(`the file is longer than ${MAX_KEY_FILE} bytes`);
      return shown(await keys.import(name, await readAll(piecesOf(file), MAX_KEY_FILE, tooLong)));
    },
    async rotate({ oldkey, ...form }) {
      await rotateIdentity(repo.config, keys, oldkey, formOf(form));
    },
  };
}
