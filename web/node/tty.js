// https://nodejs.org/api/tty.html: nothing here is a terminal.
export const isatty = () => false;
