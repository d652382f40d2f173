import { expect } from 'bun:test'
import type { Expected } from './model.ts'
import type { Asked } from './model-steps.ts'
import type { Answer, Service } from './service.ts'

/** Sends reads as clients do that have the last answers, and compares the tags of all answers. */
export function rememberReads(service: Service) {
  const lastAnswers = new Map<string, { readonly etag: string; readonly expected: Expected }>()
  const etags = new Map<string, string>()
  const contents = new Map<string, string>()
  return {
    /** Expects an answer. A tag depends on the content alone; without a content there is none. */
    async expect({ text: token }: { readonly text: string }, path: string, expected: Expected, content?: string) {
      const key = `${token} ${path}`
      const last = lastAnswers.get(key)
      const headers: Record<string, string> = last === undefined ? {} : { 'if-none-match': last.etag }
      const answer = await service.request('GET', path, { token, headers })
      const etag = answer.headers.get('etag')
      if (last !== undefined && Bun.deepEquals(last.expected, expected)) {
        expect([answer.status, answer.text, etag]).toEqual([304, '', last.etag])
        return
      }
      expect(said(answer)).toEqual(expected)
      expect(etag !== null).toBe(content !== undefined && expected.status === 200)
      if (content === undefined || etag === null) return
      expect(etags.getOrInsert(content, etag)).toBe(etag)
      expect(contents.getOrInsert(etag, content)).toBe(content)
      lastAnswers.set(key, { etag, expected })
    },
  }
}

/** The parts of an answer that the model knows. */
export const said = ({ status, headers, text, body }: Answer): Expected => ({
  status,
  body: body?.error ?? text,
  link: headers.get('link'),
})

/** The query string with these parameters. */
export function queryOf(asked: Asked): string {
  const parameters = Object.entries(asked).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}
