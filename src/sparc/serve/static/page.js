<p>page.js</p>
