const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is no directory',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a directory',
}

/** Says in words why a file cannot be read, given the system's error or its code. Returns the code if it is not a known one. */
export function readFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return READ_FAILURES[code] ?? code
}
