/** A thread that records the commits that it is sent. It says when it is ready. */
import { recordCommit } from '../../../src/store/sqlite/versions/last-commit.ts'

declare const self: Worker

self.onmessage = ({ data }: MessageEvent<Parameters<typeof recordCommit>>) => recordCommit(...data)
self.postMessage('ready')
