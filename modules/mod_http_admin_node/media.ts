/**
 * Determines the content type of responses. Content may come from anybody, so anything that a
 * browser would run is sent as text, or saved as a file.
 */
import { extname } from "node:path";

/** Pictures, audio and video, which a browser shows without running anything. */
const shown: Readonly<Record<string, string>> = {
  apng: "image/apng",
  avif: "image/avif",
  bmp: "image/bmp",
  gif: "image/gif",
  ico: "image/x-icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
  aac: "audio/aac",
  flac: "audio/flac",
  m4a: "audio/mp4",
  mp3: "audio/mpeg",
  oga: "audio/ogg",
  ogg: "audio/ogg",
  opus: "audio/ogg",
  wav: "audio/wav",
  weba: "audio/webm",
  m4v: "video/mp4",
  mov: "video/quicktime",
  mp4: "video/mp4",
  ogv: "video/ogg",
  webm: "video/webm",
};

/** Extensions of files that people read as text. */
const texts: ReadonlySet<string> = new Set(
  "c cfg conf cpp cs css csv env go h hpp htm html ini java js json jsonl jsx kt log lua markdown md mjs php pl py rb rs rst sh sql svg tex toml ts tsv tsx txt vtt xhtml xml yaml yml".split(
    " ",
  ),
);

const TEXT = "text/plain; charset=utf-8";
export const BYTES = "application/octet-stream";

export interface Media {
  readonly type: string;
  /** Whether browsers show the content. Otherwise they save it. */
  readonly isShown: boolean;
}

/** Determines the type by the name. The content is not inspected. */
export function mediaOf(name: string): Media {
  const extension = extname(name).slice(1).toLowerCase();
  const type = Object.hasOwn(shown, extension) ? shown[extension] : undefined;
  if (type !== undefined) return { type, isShown: true };
  if (texts.has(extension)) return textMedia;
  return { type: BYTES, isShown: false };
}

export const textMedia: Media = { type: TEXT, isShown: true };
