import { Elysia } from 'elysia'
import { contextOf } from './context.ts'
import { errorResponse } from './errors.ts'

/** What a path that can only be read takes. */
export const READ_ONLY = 'GET, HEAD, OPTIONS'

/** Answers OPTIONS, and every method that a path does not take, with what it takes (RFC 9110 §10.2.1). */
export function otherMethods(allowOf: Readonly<Record<string, string>>) {
  const app = new Elysia({ name: 'otherMethods', seed: allowOf })
  for (const [path, allow] of Object.entries(allowOf)) {
    const headers = { allow }
    app
      .options(path, () => new Response(null, { status: 204, headers }), { parse: 'none' })
      .all(
        path,
        ({ request }) => {
          contextOf(request).refusal = 'method_not_allowed'
          return errorResponse('method_not_allowed', { headers })
        },
        { parse: 'none' },
      )
  }
  return app
}
