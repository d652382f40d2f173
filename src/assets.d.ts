/** Files that are embedded in the executable: their text, or where to find them at run time. */
declare module '*.sql' {
  const text: string
  export default text
}

declare module '*/standalone.js' {
  const path: string
  export default path
}
