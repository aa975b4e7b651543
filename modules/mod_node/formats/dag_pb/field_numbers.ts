/**
 * Field numbers of `PBNode` and `PBLink`, and the tags of their fields ("DAG-PB specification").
 */
import { tagOf, wireBytes, wireVarint } from "../protobuf/fields.ts";

export const NODE_DATA = 1;
export const NODE_LINKS = 2;
export const LINK_HASH = 1;
export const LINK_NAME = 2;
export const LINK_TSIZE = 3;

export const NODE_DATA_TAG = tagOf(NODE_DATA, wireBytes);
export const NODE_LINKS_TAG = tagOf(NODE_LINKS, wireBytes);
export const LINK_HASH_TAG = tagOf(LINK_HASH, wireBytes);
export const LINK_NAME_TAG = tagOf(LINK_NAME, wireBytes);
export const LINK_TSIZE_TAG = tagOf(LINK_TSIZE, wireVarint);
