import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { weightOf } from '../accept.ts'
import { sizedResponse } from '../answers.ts'

/** A file of a page. Browsers keep it for good, because its name has a hash of its content. */
export type Asset = Awaited<ReturnType<typeof makeAsset>>

/** Makes an asset. It is compressed once, when a client first asks for it. */
export async function makeAsset(name: string, extension: keyof typeof TYPES, content: Blob) {
  const hash = Bun.hash(await content.arrayBuffer()).toString(36)
  const compress = async () => promisify(gzip)(await content.arrayBuffer(), { level: 9 })
  let compressed: ReturnType<typeof compress> | undefined
  return {
    /** Relative, so that it holds behind any prefix. */
    path: `assets/${name}-${hash}.${extension}`,
    async answer({ headers }: Request): Promise<Response> {
      const answerHeaders = {
        'content-type': TYPES[extension],
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
      }
      if (weightOf(headers.get('accept-encoding'), 'gzip', '*') === 0) {
        return sizedResponse(content, { headers: answerHeaders })
      }
      compressed ??= compress()
      return sizedResponse(await compressed, { headers: { ...answerHeaders, 'content-encoding': 'gzip' } })
    },
  }
}

const TYPES = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
} as const
