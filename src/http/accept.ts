// Tested in test/http/pages.test.ts.
/**
 * The weight that a header like `Accept` gives to the first of these ranges that it names (RFC 9110 §12.4.2). Name the most
 * specific range first. A range that it does not name has the weight 0.
 */
export function weightOf(header: string | null, ...ranges: readonly string[]): number {
  const weights = new Map(
    (header ?? '').split(',').map((element) => {
      const [range = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length)
      return [range, Number(weight ?? 1)]
    }),
  )
  const named = ranges.find((range) => weights.has(range))
  return (named !== undefined && weights.get(named)) || 0
}

/** Whether a client would rather have a page than JSON. A browser says so, and a program that takes anything does not. */
export const prefersHtml = (accept: string | null): boolean =>
  weightOf(accept, 'text/html', 'text/*', '*/*') > weightOf(accept, 'application/json', 'application/*', '*/*')
