/** A thread that notes the commits it is told of. Says that it is there. */
import { noteCommit } from '../../../src/store/sqlite/versions/last-commit.ts'

declare const self: Worker

self.onmessage = ({ data }: MessageEvent<Parameters<typeof noteCommit>>) => noteCommit(...data)
self.postMessage('ready')
