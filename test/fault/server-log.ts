/** A line of the log of a server, parsed. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at all kinds of lines
type LogLine = any

/** The lines that a server has logged. */
export const logLines = (server: { stdout(): string }): LogLine[] =>
  server
    .stdout()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

/** The reasons that a server gave for a failed store. A server gives a reason once, if at all. */
export const fatalReasons = (server: { stdout(): string }): string[] =>
  logLines(server)
    .filter(({ level }) => level === 'fatal')
    .map(({ reason }) => reason)
