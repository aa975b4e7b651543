/** The page of a document, for browsers. */
import type { Found } from "../resolve.ts";

/** Counted up when the page changes. */
const PAGE_VERSION = 1;

export const documentPageTag = ({ text }: Pick<Found, "text">): string => `"DagIndex-${PAGE_VERSION}_CID-${text}"`;
