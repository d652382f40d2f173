const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is no directory',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a directory',
}

/** Says in words why a file was not read, by the error of the system or its code. Returns the code if there are no words for it. */
export function readFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return READ_FAILURES[code] ?? code
}
