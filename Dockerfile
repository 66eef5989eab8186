# The demo's processes: downstream, producer and consumer. The library itself needs no image.
FROM node:20-alpine
WORKDIR /app
COPY package.json package-lock.json ./
# No install scripts: nothing here needs a native build.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY workers workers
USER node
# Not through npx: as the container's first process it would keep SIGTERM to itself.
ENTRYPOINT ["node", "--import", "tsx"]
