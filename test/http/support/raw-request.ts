/** What a raw request may have otherwise than the default. */
export interface RawOptions {
  /** `null` sends no `Authorization`. */
  readonly token?: string | null
  readonly version?: '1.0' | '1.1'
  readonly host?: string | null
  /** Whether the request asks for the end of the connection; it does if left out. */
  readonly closes?: boolean
  /** Further lines of the head. */
  readonly lines?: readonly string[]
  readonly body?: string
}

/** The bytes of a request. */
export function rawRequest(
  method: string,
  target: string,
  { token = null, version = '1.1', host = 'localhost', closes = true, lines = [], body = '' }: RawOptions,
): string {
  const head = [
    `${method} ${target} HTTP/${version}`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...(closes ? ['Connection: close'] : []),
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...lines,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
