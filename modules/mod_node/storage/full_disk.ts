const fullCodes: readonly unknown[] = ["ENOSPC", "EDQUOT"];

/** Whether an operation failed because the disk or the quota is full. */
export const isFullDisk = (error: unknown): boolean =>
  error instanceof Error &&
  (fullCodes.includes((error as NodeJS.ErrnoException).code) || /no space left|quota exceeded/i.test(error.message));
