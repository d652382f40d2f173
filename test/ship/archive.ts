import { pack } from 'tar-stream'

/** A file in an archive. */
export interface ArchivedFile {
  readonly path: string
  readonly content: Uint8Array | string
  readonly isExecutable?: boolean
}

/** Higher levels take several times as long to save one percent. */
const GZIP_LEVEL = 5

/**
 * A compressed tar archive: always the same bytes for the same files and time. The files belong to root and are sorted by path.
 * The gzip header has no time and no name.
 */
export async function archive(files: readonly ArchivedFile[], modifiedAt: Date): Promise<Uint8Array> {
  const tar = pack()
  for (const { path, content, isExecutable } of [...files].sort((one, other) => (one.path < other.path ? -1 : 1))) {
    tar.entry(
      {
        name: path,
        mode: isExecutable ? 0o755 : 0o644,
        mtime: modifiedAt,
        uid: 0,
        gid: 0,
        uname: 'root',
        gname: 'root',
      },
      Buffer.from(content),
    )
  }
  tar.finalize()
  const chunks: Uint8Array[] = []
  for await (const chunk of tar as AsyncIterable<Uint8Array>) chunks.push(chunk)
  return Bun.gzipSync(Buffer.concat(chunks), { level: GZIP_LEVEL, library: 'libdeflate' })
}
