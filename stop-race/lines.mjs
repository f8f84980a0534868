// Lines of a socket, one by one.

export function lines(socket, onLine) {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk) => {
    rest += chunk;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      onLine(rest.slice(0, end));
      rest = rest.slice(end + 1);
    }
  });
}
