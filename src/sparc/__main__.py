from sparc.cli.main import main

raise SystemExit(main())
