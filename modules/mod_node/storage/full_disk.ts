const fullCodes: readonly unknown[] = ["ENOSPC", "EDQUOT"];

/** Whether an operation failed for lack of room. */
export const isFullDisk = (error: unknown): boolean =>
  error instanceof Error &&
  (fullCodes.includes((error as NodeJS.ErrnoException).code) || /no space left|quota exceeded/i.test(error.message));
